-- Number of the newest memory whose facts a model has compared with older ones.
ALTER TABLE agents ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;
