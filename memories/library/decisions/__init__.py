"""Decision records: Markdown files of a project's repository, read as MADR, adr-tools and log4brains write them."""
