"""What goes from memory into a prompt: how much of it (`budget`, pure), and which memories (`ops`)."""
