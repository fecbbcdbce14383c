"""Parts of pages that list rows: the query bar's language and comparisons in filters. Knows no app's rows."""
