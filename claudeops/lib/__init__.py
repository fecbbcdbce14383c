"""Code that belongs to no domain: imports only the standard library, Django and installed packages."""
