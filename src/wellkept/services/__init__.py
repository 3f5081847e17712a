"""Services: the operations of wellkept, independent of SQL, sockets and user interfaces."""
