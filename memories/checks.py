"""System checks of the memory store: what a person can get wrong, with a hint."""
