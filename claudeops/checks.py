"""System checks of the project: what a person can get wrong, with a hint."""
