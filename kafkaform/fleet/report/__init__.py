"""The report: questions to the tables of a build, a model of plain data, and pages made of it.

    questions -> rows -> model.FleetReport -> html, markdown, data (JSON)

Only `questions` reads tables; the rest are pure functions, so that the same rows make the same
bytes.
"""
