"""Real servers that tests start on this machine: a Kafka broker and a schema registry."""
