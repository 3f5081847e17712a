"""What recollect does, one module for each verb. Services know records, policy and ports; no SQL, socket or face."""
