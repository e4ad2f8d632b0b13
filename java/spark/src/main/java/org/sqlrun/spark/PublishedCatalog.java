package org.sqlrun.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * A warehouse's published tables, of one tick in each query: {@code catalog.schema.table}, read only.
 *
 * <p>The schemas are those of the project and of its environments. Which version of each table belongs to the newest
 * tick is in a small file beside the tables' folders. A query reads it once, however many tables it names, so a tick
 * that is published meanwhile is seen by the next query.
 */
public final class PublishedCatalog implements TableCatalog, SupportsNamespaces {
  private static final String SUFFIX = ".json";
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The ticks that a query reads, by the tracker that Spark makes for each query. */
  private final Map<QueryPlanningTracker, Map<String, Map<String, Long>>> queries =
      Collections.synchronizedMap(new WeakHashMap<>());

  private String name;
  private Path folder;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    String warehouse = options.get("warehouse");
    if (warehouse == null || warehouse.isBlank()) {
      throw new IllegalArgumentException(
          "The catalog " + name + " needs its warehouse: spark.sql.catalog." + name + ".warehouse");
    }
    this.name = name;
    this.folder = new Path(warehouse, "current");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Collections.emptySet();
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    Map<String, Long> tick = ident.namespace().length == 1 ? tickOf(ident.namespace()[0]) : null;
    String table = tick == null ? null : named(ident.name(), tick.keySet());
    if (table == null) {
      throw new NoSuchTableException(ident);
    }
    long version = tick.get(table);
    Path path = new Path(new Path(folder, ident.namespace()[0]), table);
    // Delta's own catalog reads a path as a table, at a version.
    TableCatalog delta = (TableCatalog) session().sessionState().catalogManager().catalog("spark_catalog");
    return delta.loadTable(Identifier.of(new String[] {"delta"}, path.toString()), Long.toString(version));
  }

  /** Spark asks for a table like this before it writes to it. */
  @Override
  public Table loadTable(Identifier ident, Set<TableWritePrivilege> privileges) {
    throw refused();
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    Map<String, Long> tick = namespace.length == 1 ? tickOf(namespace[0]) : null;
    if (tick == null) {
      throw new NoSuchNamespaceException(namespace);
    }
    return tick.keySet().stream().sorted().map(table -> Identifier.of(namespace, table)).toArray(Identifier[]::new);
  }

  @Override
  public String[][] listNamespaces() {
    List<String[]> found = new ArrayList<>();
    try {
      for (FileStatus status : files().listStatus(folder)) {
        String file = status.getPath().getName();
        if (status.isFile() && file.endsWith(SUFFIX) && !file.startsWith(".")) {
          found.add(new String[] {file.substring(0, file.length() - SUFFIX.length())});
        }
      }
    } catch (FileNotFoundException error) {
      return new String[0][];
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found.toArray(String[][]::new);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length != 1 || tickOf(namespace[0]) == null) {
      throw new NoSuchNamespaceException(namespace);
    }
    return Collections.emptyMap();
  }

  /** Returns a table by its name, or else regardless of case, as Spark's own catalog does; null if there is none. */
  private static String named(String name, Set<String> tables) {
    if (tables.contains(name)) {
      return name;
    }
    return tables.stream().filter(name::equalsIgnoreCase).findFirst().orElse(null);
  }

  /** Returns the version of each table of a schema, at the tick that the running query reads; null without a tick. */
  private Map<String, Long> tickOf(String schema) {
    Option<QueryPlanningTracker> query = QueryPlanningTracker$.MODULE$.get();
    if (query.isEmpty()) {
      return read(schema);
    }
    Map<String, Map<String, Long>> seen = queries.computeIfAbsent(query.get(), key -> new HashMap<>());
    synchronized (seen) {
      if (!seen.containsKey(schema)) {
        seen.put(schema, read(schema));
      }
      return seen.get(schema);
    }
  }

  private Map<String, Long> read(String schema) {
    Path pointer = new Path(folder, schema + SUFFIX);
    JsonNode tables;
    try (InputStream file = files().open(pointer)) {
      tables = JSON.readTree(file).path("tables");
    } catch (FileNotFoundException error) {
      return null;
    } catch (IOException error) {
      throw new UncheckedIOException("The newest tick can't be read from " + pointer, error);
    }
    Map<String, Long> found = new HashMap<>();
    for (Iterator<Map.Entry<String, JsonNode>> each = tables.fields(); each.hasNext(); ) {
      Map.Entry<String, JsonNode> table = each.next();
      if (table.getValue().isIntegralNumber()) {
        found.put(table.getKey(), table.getValue().longValue());
      }
    }
    // A part of the tables would be a tick that was never published.
    if (found.isEmpty() || found.size() < tables.size()) {
      throw new IllegalStateException("The file " + pointer + " doesn't name a tick. The next tick writes it again.");
    }
    return found;
  }

  private FileSystem files() throws IOException {
    Configuration configuration = session().sessionState().newHadoopConf();
    return folder.getFileSystem(configuration);
  }

  private static SparkSession session() {
    return (SparkSession) SparkSession.active();
  }

  private UnsupportedOperationException refused() {
    return new UnsupportedOperationException(
        "The catalog " + name + " is read only: its tables are what sqlrun publishes");
  }

  @Override
  public Table createTable(Identifier ident, StructType schema, Transform[] parts, Map<String, String> properties) {
    throw refused();
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    throw refused();
  }

  @Override
  public boolean dropTable(Identifier ident) {
    throw refused();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw refused();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    throw refused();
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw refused();
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw refused();
  }
}
