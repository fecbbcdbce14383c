"""System checks of the runner: what a person can get wrong, with a hint."""
