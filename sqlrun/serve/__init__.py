"""Published ticks over HTTP: an API, and a page for owners. Its libraries are those of the extra `serve`. Pure."""
