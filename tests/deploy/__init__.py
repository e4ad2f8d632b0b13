"""Files to deploy with: what they say is so, and each tool accepts them."""
