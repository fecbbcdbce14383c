"""A list as a declaration. `view.ListView` is the door: its subclasses say what they list, and own nothing else.

`columns` has what a list declares, `query` the language of its bar, `filters` comparisons and periods in it, `keyset`
orders and pages, `selection` the rows of a bulk action, `export` its files, `histogram` the chart above it, `choices`
what a person keeps of it. Knows no app's rows.
"""
