"""Producer, consumer and admin: one asynchronous core, a synchronous and an asynchronous face."""
