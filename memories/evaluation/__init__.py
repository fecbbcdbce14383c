"""Evaluate recall and matching on labelled sets, in a scratch database (`manage.py bench`)."""
