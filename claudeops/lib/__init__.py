"""Code of nobody's domain: it imports only the standard library, Django and installed packages.

Each module serves at least two apps and could be used in another project. It must not know claudeops's apps.
"""
