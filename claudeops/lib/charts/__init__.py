"""Charts drawn on the server: each module computes one kind of chart, without a database, for its template."""
