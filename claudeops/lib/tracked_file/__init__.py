"""A Markdown file under git, such as MEMORY.md or an agent's memory file.

`document` is its lines, headings and items, `passages` what a reader takes together, `merge` the difference of two
texts, `disk` how it is read, locked and written whole, `git` its commits and who wrote its lines. It knows no table.
"""
