"""Reading documents: Markdown, text, HTML and PDF, each turned into the same kind of parts."""
