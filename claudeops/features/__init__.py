"""What stands above both apps: pages, purge, backups, trace, metrics, the doctor."""
