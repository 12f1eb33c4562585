"""In: settings of a provider block, calls of a provider. Out: answers, faults and logins of systems
that speak HTTP.

Must not know: any system's paths, fields or error codes. Only an opened client loads http.client.
"""
