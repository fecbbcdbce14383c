"""Alerts of monitoring systems: `forms` reads one (pure), `receive` queues its session. Must not know requests."""
