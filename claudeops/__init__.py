"""The project: settings, URLs, the admin site. The only package that knows both apps."""

__version__ = "0.1.0"
