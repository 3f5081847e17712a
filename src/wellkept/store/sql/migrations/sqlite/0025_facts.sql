-- Facts out of conversations: the parts of what a user said, and the turns it came from. Of an ended memory, what ended it and
-- how; forgotten_at: since when it is hidden at a user's request. Columns with constant defaults rewrite no row.
ALTER TABLE memories ADD COLUMN told TEXT;
ALTER TABLE memories ADD COLUMN sources TEXT NOT NULL DEFAULT '[]';
ALTER TABLE memories ADD COLUMN ended_by INTEGER;
ALTER TABLE memories ADD COLUMN ended_as TEXT;
ALTER TABLE memories ADD COLUMN forgotten_at TEXT;
