-- Text in {user|…} is part of a statement only if it runs for one user of an agent, or for the records of no user.

-- Records that a user reads; `also` is '' or, to leave out the records of no user, NULL.
-- fragment: seen
{user| AND user_id IN (:user, :also)}

-- Records that a user may change.
-- fragment: owned
{user| AND user_id = :user}

-- The same for the entries of an index, which do not name the user.
-- fragment: owned_entries
{user| AND seq IN (SELECT m.seq FROM memories m
                   WHERE m.tenant_id = :tenant AND m.agent_id = :agent AND m.user_id = :user)}
