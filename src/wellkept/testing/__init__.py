"""Tools for tests: a scripted model server, and the contract that every store keeps."""
