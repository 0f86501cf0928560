"""TLS: what the `ssl=` of connections and servers, and start_tls, give."""
