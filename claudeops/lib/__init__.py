"""Code for two apps or more. It imports only the standard library, Django and installed packages, never the apps."""
