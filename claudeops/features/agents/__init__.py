"""The page of an agent: its runs, what it learned, what it may do. It stands above both apps; `urls` is the door."""
