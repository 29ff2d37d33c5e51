-- Nothing yet.
CREATE TABLE {schema}.placeholder (id integer);
