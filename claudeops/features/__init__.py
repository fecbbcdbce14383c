"""What stands above both apps, a package or a module each: pages, purge, backups, trace, metrics, the doctor."""
