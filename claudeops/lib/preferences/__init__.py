"""What a person has chosen: theme, time zone, saved views of lists. A Django app that knows no other app.

Its doors: `chosen.preference_of` (never fails, asks nothing when the account was loaded with its preference),
`saved_views` (list, save, rename, remove), `lists` (columns and size of a list), `middleware.PersonMiddleware`
(activates the zone).
"""
