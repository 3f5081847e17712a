"""Services: the operations of recollect, independent of SQL, sockets and user interfaces."""
