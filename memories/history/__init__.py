"""The history of memories for people: timeline, confidence over time, forecast, evidence in words. Reads only."""
