"""What is claimed: noise mechanisms as exact data, their declared form, and float calibration. Decides nothing."""
