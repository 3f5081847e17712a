-- The categories of knowledge an agent is limited to; an empty list: none.
ALTER TABLE agents ADD COLUMN knowledge_categories JSONB NOT NULL DEFAULT '[]';

-- Why somebody should look at a document, as memories have it.
ALTER TABLE kb_documents ADD COLUMN flag TEXT;
