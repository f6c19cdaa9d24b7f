"""What is proved: three-valued verdicts about exact claims, in ball arithmetic. No I/O, no clock, no randomness."""
