"""The drivers: one module for each product."""
