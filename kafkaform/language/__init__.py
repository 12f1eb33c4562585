"""In: parsed files, input variables, and the schemas of resource types and provider blocks.
Out: `core.resource.Desired`: every declared object with known values, and all faults at once.
Must not know: systems, states, plans, terminals, the environment, or any type's meaning."""
