"""The commands of ``audit`` in groups: options are parsed here, the work is done by the modules beside this folder."""
