"""What is recorded: certificates, their canonical bytes, their signatures, and how each is checked."""
