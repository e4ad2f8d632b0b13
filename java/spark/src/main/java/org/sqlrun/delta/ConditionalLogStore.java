package org.sqlrun.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3: a commit is one PUT that the store refuses if the object exists.
 *
 * <p>So any number of drivers, and of writers other than Spark, may commit to one table. It needs S3A of
 * Hadoop 3.4.2 or newer, and a store that supports the header If-None-Match.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {
  private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

  /** S3's answer while it has not yet decided between two uploads of one object. */
  private static final String UNDECIDED = "Status Code: 409";

  private static final int ATTEMPTS = 8;
  private static final long FIRST_PAUSE = 50;

  /** Delta calls this. */
  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  /**
   * Writes a file of the log.
   *
   * @throws FileAlreadyExistsException if another writer's file is there, and `overwrite` is false
   */
  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    // All of it before the upload begins: an error in the iterator must not leave a part of a commit.
    byte[] bytes = joined(actions);
    FileSystem files = path.getFileSystem(configuration);
    if (overwrite) {
      put(files, path, bytes, false);
      return;
    }
    long pause = FIRST_PAUSE;
    for (int attempt = 1; ; attempt++) {
      try {
        put(files, path, bytes, true);
        return;
      } catch (IOException error) {
        // Whatever the error: the upload may have succeeded, and its answer been lost. S3A itself repeats an
        // upload without an answer; the second one is then refused because of the first.
        if (isOwn(files, path, bytes, error)) {
          return;
        }
        if (attempt == ATTEMPTS || !String.valueOf(error.getMessage()).contains(UNDECIDED)) {
          throw error;
        }
      }
      sleep(pause);
      pause *= 2;
    }
  }

  /** Returns false: an upload is visible as a whole or not at all. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }

  /**
   * Returns whether the file at a path is the one that this writer has just tried to write; false if there is none.
   * A commit names its transaction and its data files by random ids, so equal bytes are the same commit.
   */
  private static boolean isOwn(FileSystem files, Path path, byte[] bytes, IOException error) throws IOException {
    try (InputStream there = files.open(path)) {
      // One byte more shows that the file goes on.
      if (Arrays.equals(there.readNBytes(bytes.length), bytes) && there.read() < 0) {
        return true;
      }
    } catch (FileNotFoundException none) {
      return false;
    } catch (IOException unread) {
      error.addSuppressed(unread);
      throw error;
    }
    FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
    taken.initCause(error);
    throw taken;
  }

  private static void put(FileSystem files, Path path, byte[] bytes, boolean ifAbsent) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path).recursive();
    // Without this, S3A looks whether there is a file, which decides nothing.
    builder.overwrite(true);
    if (ifAbsent) {
      builder.must(IF_ABSENT, true);
    }
    FSDataOutputStream out = builder.build();
    boolean complete = false;
    try {
      out.write(bytes);
      complete = true;
    } finally {
      if (complete) {
        out.close();
      } else {
        // Closing it would upload the part that it has.
        out.abort();
      }
    }
  }

  private static byte[] joined(Iterator<String> actions) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      bytes.writeBytes(actions.next().getBytes(StandardCharsets.UTF_8));
      bytes.write('\n');
    }
    return bytes.toByteArray();
  }

  private static void sleep(long milliseconds) throws IOException {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted between two attempts to commit");
    }
  }
}
