"""What is known of the world, as tables that anybody may extend: causes with their actions, settings, backends."""
