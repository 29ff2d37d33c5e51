"""What plugs a window into agent frameworks that are extras."""
