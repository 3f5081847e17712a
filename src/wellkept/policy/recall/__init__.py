"""Rules for recall: questions, similarity, ranking, purposes."""
