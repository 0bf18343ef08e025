"""A server that speaks the protocol of OpenEnv, over HTTP and WebSockets."""
