"""The dashboard's pages of what agents do. Thin; every input has a form; asking and stopping is the queue's."""
