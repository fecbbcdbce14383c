"""Times are UTC."""

DATETIME_FORMAT = "Y-m-d H:i:s"
