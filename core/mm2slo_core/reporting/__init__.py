"""What a report says of an objective at one instant, from counted events alone: pure."""
