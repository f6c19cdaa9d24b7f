"""The parts of the second opinion (audit.second_opinion): none of them imports anything else of this project."""
