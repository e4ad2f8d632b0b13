"""The engines that run a tick; each library has its home in one module here. Pure."""
