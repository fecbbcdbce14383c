"""The dashboard's pages of what is known. Thin; every input has a form, every change is a verb of the lifecycle."""
