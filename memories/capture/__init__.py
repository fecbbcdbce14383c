"""From an agent's text to statements: `markers` finds, `statement` validates, `gate` judges. No database."""
